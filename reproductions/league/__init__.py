"""The league: the four systems beside what a sensible person would try first, on problems of many kinds."""
