/**
 * Must be the first import of the page: it prepares what the content security policy asks of the libraries.
 *
 * Mantine writes style elements through `innerHTML`, which Trusted Types allow only through the default policy. The
 * policy passes text without a tag. It refuses everything else, so no text of a request can become an element.
 */
interface TrustedTypes {
  createPolicy(name: string, rules: Record<string, (text: string) => string>): unknown;
}

const refuse = (kind: string) => () => {
  throw new TypeError(`This page does not turn text into ${kind}.`);
};

const trusted = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
trusted?.createPolicy("default", {
  createHTML: (text) => (text.includes("<") ? refuse("markup")() : text),
  createScript: refuse("a script"),
  createScriptURL: refuse("the address of a script"),
});

/** The nonce of this answer. The server puts a fresh one into the page. */
export const styleNonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";

// Drawers and dialogs lock the page's scrolling with a style element that takes its nonce from here.
(globalThis as { __webpack_nonce__?: string }).__webpack_nonce__ = styleNonce;
