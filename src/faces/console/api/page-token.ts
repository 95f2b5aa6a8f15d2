const STORED = "longwatch-page-token";

/**
 * The session's second secret. The browser sends the cookie to every port of the host, but keeps this for pages of this
 * origin, in every tab.
 */
export const pageToken = {
  read: () => localStorage.getItem(STORED),
  store: (token: string) => localStorage.setItem(STORED, token),
  forget: () => localStorage.removeItem(STORED),
};

/** Requests so long after the last input of a person count as use of the session. Polls of a page left open do not. */
const ACTIVE_MS = 60_000;
let lastInputAt = Date.now();
for (const input of ["pointerdown", "keydown", "wheel", "touchmove"])
  document.addEventListener(input, () => (lastInputAt = Date.now()), { capture: true, passive: true });

/** The headers that go with the session's cookie. */
export function sessionHeaders(): Readonly<Record<string, string>> {
  const token = pageToken.read();
  return {
    ...(token === null ? {} : { "x-page-token": token }),
    ...(Date.now() - lastInputAt < ACTIVE_MS ? { "x-user-active": "true" } : {}),
  };
}
