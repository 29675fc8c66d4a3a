// What ends a client or its work.

// Why this browser cannot take part, in a line for the person at it.
export class JoinError extends Error {
  // `isFinal`: a server has refused it for good.
  constructor(line, isFinal = false) {
    super(line);
    this.isFinal = isFinal;
  }
}

// A task is not wanted any more.
export class Stopped extends Error {}
