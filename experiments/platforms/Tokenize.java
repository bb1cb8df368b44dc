import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** Prints the token ids of each line of stdin: java Tokenize VOCABULARY_FILE MAX_TOKENS. Called by java_tokenizer.py. */
final class Tokenize {
    public static void main(String[] arguments) throws IOException {
        WordPieceTokenizer tokenizer =
                new WordPieceTokenizer(Files.readAllLines(Path.of(arguments[0])), Integer.parseInt(arguments[1]));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(Arrays.toString(tokenizer.encode(line)));
            }
        }
        out.flush();
    }
}
