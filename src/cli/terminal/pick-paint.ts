import { type Paint, paintColour, paintPlain } from "../../delivery/channels/terminal/terminal-style.ts";
import type { StoreIo } from "../store/store-command.ts";

/** Colours only on a terminal that has them; the terminal's own answer heeds NO_COLOR and TERM. */
export function pickPaint({ stdout }: Pick<StoreIo, "stdout">): Paint {
  return stdout.isTTY === true && stdout.hasColors?.() !== false ? paintColour : paintPlain;
}
