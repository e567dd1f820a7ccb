"""The ways to Spark: an app that is submitted as a child process, and a server that stays."""
