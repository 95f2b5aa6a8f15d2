import { useMemo } from "react";
import { classifyAction, createActionStates } from "#model/action-class.ts";
import { useSession } from "../api/session.ts";
import { ACTION_COLOURS } from "../look/words.ts";

/** The action of an event: the colour of what became of its request, the same everywhere, and the word. */
export function ActionWord({ action }: { readonly action: string }) {
  const { actions } = useSession();
  const { classify } = useMemo(() => createActionStates(actions), [actions]);
  const name = classifyAction(action);
  return (
    <ColourWord colour={ACTION_COLOURS[classify(action)]}>
      {name === "other" ? action || "(none)" : name}
    </ColourWord>
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
