"""The league at equal costs: contests of the engine that `launch.advise` has."""
