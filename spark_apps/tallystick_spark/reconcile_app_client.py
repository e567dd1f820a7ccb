"""The app as the client of a Spark Connect server, started by Python alone; spark-submit is given the app itself.

Most of a small cut's time goes into imports, and a fifth of theirs into the search for garbage that is not there.
"""

from tallystick.host.gc_tuning import relaxed_gc

if __name__ == "__main__":
    with relaxed_gc():
        from tallystick_spark.reconcile_app import run_submitted

        run_submitted()
