import { UNKNOWN } from "#model/ocsf.ts";
import { escapeControlsInJson } from "../csv/escape-controls.ts";
import { maskAddress } from "../mask/mask.ts";

interface Line {
  readonly http_request: { readonly uid?: string };
  readonly src_endpoint: { readonly ip?: string; readonly name?: string };
}

/**
 * Returns a line of `toOcsfLine` that no terminal obeys, with its line feed. A masked key sees a shortened address and no id of
 * the request, as from `toOcsf`. DuckDB would need the memory of many lines to look at their characters.
 */
export function finishOcsfLine(line: string, isMasked = false): string {
  return `${escapeControlsInJson(isMasked ? mask(line) : line)}\n`;
}

function mask(line: string): string {
  const event = JSON.parse(line) as Line;
  const { ip, name = UNKNOWN, ...others } = event.src_endpoint;
  const masked = ip === undefined && name === UNKNOWN ? UNKNOWN : maskAddress(ip ?? name);
  const { uid: _uid, ...request } = event.http_request;
  return JSON.stringify({ ...event, src_endpoint: { name: masked, ...others }, http_request: request });
}
