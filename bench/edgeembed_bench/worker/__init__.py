"""The worker process, which measures one subject in the Python that the subject is installed in.

It is started by path, and neither `edgeembed_bench` nor NumPy need be installed there. Its modules therefore import
only the standard library, and as little of it as possible, because imported modules count as memory of the subject.
"""
