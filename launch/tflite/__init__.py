"""Files for a phone, made from a run and measured."""
