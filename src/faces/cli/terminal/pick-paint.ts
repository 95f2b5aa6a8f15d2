import { type Paint, paintColour, paintPlain } from "#stages/delivery/channels/terminal/terminal-style.ts";
import type { StoreIo } from "../store/store-command.ts";

/** Returns colours only for a terminal that has them. `hasColors` respects NO_COLOR and TERM. */
export function pickPaint({ stdout }: Pick<StoreIo, "stdout">): Paint {
  return stdout.isTTY === true && stdout.hasColors?.() !== false ? paintColour : paintPlain;
}
