"""What is known of what a user likes."""
