import { replaceAddresses } from "../../privacy/replace-addresses.ts";
import { maskAddress } from "./mask.ts";

/** The text with every address in it masked, whoever wrote it: a recommendation, a note. */
export function maskText(text: string): string {
  return replaceAddresses(text, maskAddress);
}

export function maskNullable(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : maskText(text);
}
