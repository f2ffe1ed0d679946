"""The arithmetic of a forecast: from a machine's alarms to features and probabilities.

In the paper's symbols: the input codes are A, the target codes A_out (L of them), the evidence window
lasts D_in, the horizon D_out, and a window becomes x = (c_1 … c_N) and y = (y_1 … y_L).
"""
