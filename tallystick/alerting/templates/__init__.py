"""One template per kind of sink; `view.py` says what each of them may write."""
