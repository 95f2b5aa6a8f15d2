import { classifyAction } from "#model/action-class.ts";
import type { ActionClass } from "#model/kinds.ts";
import { ACTION_COLOURS } from "../look/words.ts";

/** The action of an event: a colour that is the same everywhere, and the word. */
export function ActionWord({ action }: { readonly action: string }) {
  const name: ActionClass = classifyAction(action);
  return (
    <ColourWord colour={ACTION_COLOURS[name]}>{name === "other" ? action || "(none)" : name}</ColourWord>
  );
}

function ColourWord({ colour, children }: { readonly colour: string; readonly children: string }) {
  return (
    <span style={{ whiteSpace: "nowrap" }}>
      <Swatch colour={colour} /> {children}
    </span>
  );
}

export function Swatch({ colour }: { readonly colour: string }) {
  return (
    <span
      aria-hidden="true"
      style={{ display: "inline-block", width: 9, height: 9, borderRadius: 2, background: colour }}
    />
  );
}
