import { replaceAddresses } from "#stages/privacy/replace-addresses.ts";
import { maskAddress } from "./mask.ts";

/** Returns the text, such as a recommendation or a note, with every address in it masked. */
export function maskText(text: string): string {
  return replaceAddresses(text, maskAddress);
}

export function maskNullable(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : maskText(text);
}
