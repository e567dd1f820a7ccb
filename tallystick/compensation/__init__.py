"""What may be repaired, who has to agree, and what an effect must look like. Pure."""
