// Keeps the screen on, where the browser can: on a page that came by TLS or from its own machine.

let [lock, isWanted, tell] = [null, false, () => {}];

// `onChange` hears whether the screen is kept on.
export async function keepAwake(wanted, onChange = tell) {
  [isWanted, tell] = [wanted, onChange];
  if (wanted) await take();
  else await lock?.release();
}

async function take() {
  try {
    lock = await navigator.wakeLock.request("screen");
    lock.addEventListener("release", () => tell(false));
    tell(true);
  } catch {
    tell(false); // there is none, or the battery is low
  }
}

// Browsers take it back from a page that is out of sight.
document.addEventListener("visibilitychange", () => {
  if (isWanted && !document.hidden) take();
});
