const NO_ADDRESS =
  /^(?:|-|unknown|unavailable|anonymous|anonymized|anonymised|masked|erased|null|undefined|0\.0\.0\.0|::|::0|127(?:\.\d{1,3}){3}|::1|\*(?:\.\*){0,3})$/i;

/**
 * Returns whether a text that stands for an address is no visitor's: the platform anonymises addresses, the edge called itself, or
 * the address is not known. Such events have no sender that could be counted, named or blocked.
 */
export function isNoVisitor(ip: string): boolean {
  return NO_ADDRESS.test(ip.trim());
}

/** Returns whether a text stands for many addresses: `203.0.113.*`, `203.0.113.0`, a prefix with a length. */
export function isNetworkText(ip: string): boolean {
  return /^\d{1,3}\.\d{1,3}\.\d{1,3}\.(?:0|\*|x+)$/i.test(ip) || ip.includes("/") || /\*/.test(ip);
}
