"""One template per kind of sink; `alert_view` says what each of them may write."""
