"""Connection types with a test button, and the addresses that other providers' hooks give."""
