// The steps of training: which examples are in each, and how what else waits has its turn between them.

const PAUSE_EVERY_MS = 40;

// Lets what waits in the worker have its turn, now and then. A channel, since browsers slow timers down.
export function makePause() {
  const { port1, port2 } = new MessageChannel();
  let [paused, resume] = [performance.now(), null];
  port1.onmessage = () => resume();
  return async () => {
    if (performance.now() - paused < PAUSE_EVERY_MS) return false;
    await new Promise((resolve) => {
      resume = resolve;
      port2.postMessage(null);
    });
    paused = performance.now();
    return true;
  };
}

// The rows of step `step` of an order and the labels that count: what fills a batch has label -1; BatchNorm sees it, so
// it is other examples of the same client. `order` has `numExamples` entries an epoch.
export function chooseBatch(order, numExamples, labels, size, step) {
  const perEpoch = Math.ceil(numExamples / size);
  const row = Math.floor(step / perEpoch) * numExamples;
  const first = (step % perEpoch) * size;
  const count = Math.min(size, numExamples - first);
  const rows = Array.from({ length: size }, (_, i) => order[row + ((first + i) % numExamples)]);
  return { count, rows, labels: Int32Array.from(rows, (example, i) => (i < count ? labels[example] : -1)) };
}
