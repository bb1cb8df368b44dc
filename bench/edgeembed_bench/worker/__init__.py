"""The process that measures one subject, in whichever Python the subject is installed in.

It is started by path and may run where neither `edgeembed_bench` nor NumPy is installed. Its modules therefore import
the standard library alone when they are loaded, and little of that: what they import counts as memory of the subject.
"""
