// The ways to bring examples of one's own.

export const WAYS = [];
