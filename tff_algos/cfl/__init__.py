"""CFL (Sattler et al. 2020): clusters that are cut into two where training stands still."""
