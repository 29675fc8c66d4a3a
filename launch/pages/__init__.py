"""How a page becomes one file that needs no network: its parts joined and packed, all else forbidden."""
