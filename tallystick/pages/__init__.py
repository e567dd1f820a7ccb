"""The pages in Airflow: what they say and how it is rendered. Pure, but for the template files."""
