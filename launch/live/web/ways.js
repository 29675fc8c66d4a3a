// The ways to bring examples of one's own. Each has
// - title, and fits(description): whether it can bring what the run wants
// - show(place, description, onChange): puts its controls into an element; onChange({numTrain, numTest, problem}) hears
//   of every change: how many examples there are to train on and to test, and a line on what is lacking, or ""
// - read(key): a promise of {trainX, trainY, testX, testY}, preprocessed; a fifth is held out, by the client's key

import { TABLE } from "./csv.js";
import { DRAWING } from "./drawing.js";
import { IMAGES } from "./images.js";

export const WAYS = [DRAWING, IMAGES, TABLE];
