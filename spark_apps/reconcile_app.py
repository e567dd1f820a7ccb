"""The file that spark-submit is given in a checkout. What it runs lies in the installed package `tallystick_spark`."""

from tallystick_spark.reconcile_app import run_submitted

if __name__ == "__main__":
    run_submitted()
