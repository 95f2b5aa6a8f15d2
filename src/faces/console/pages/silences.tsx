import { type ReactNode, useState } from "react";
import { LASTING_SILENCE_STATES } from "#model/kinds.ts";
import { type Silence, useSilences } from "../api/alert.ts";
import { useMay } from "../api/session.ts";
import { PagedPanel } from "../components/paged-panel.tsx";
import { QuietButton } from "../components/quiet-button.tsx";
import { Rows } from "../components/rows.tsx";
import { SilenceRow } from "../components/silence-row.tsx";
import { useZones } from "../state/zones.ts";
import { NewSilenceDialog } from "./silences/new-silence.tsx";

/** Lists the silences: what each mutes, until when, by whom and why. */
export default function SilencesPage() {
  const mayAct = useMay("act");
  const [isAdding, setAdding] = useState(false);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Silences</h1>
      <List
        title="Silences"
        about="active, and pending ones that have not begun"
        actions={
          mayAct ? <QuietButton icon="plus" word="Add a silence" onClick={() => setAdding(true)} /> : null
        }
        states={LASTING_SILENCE_STATES}
        none="Nothing is muted. A silence can also be made on the page of an alert, or from alerts that are selected in the list."
      />
      <List title="Ended" about="newest first" states={["expired"]} none="No silence has ended." />
      {isAdding ? <NewSilenceDialog onClose={() => setAdding(false)} /> : null}
    </div>
  );
}

interface Props {
  readonly title: string;
  readonly about: string;
  readonly actions?: ReactNode;
  readonly states: readonly Silence["state"][];
  readonly none: string;
}

function List({ title, about, actions, states, none }: Props) {
  const { isShown } = useZones();
  return (
    <PagedPanel
      title={title}
      about={about}
      actions={actions}
      query={useSilences(states)}
      what="silences"
      isShown={({ matchers }) => matchers?.zone === undefined || matchers.zone.some(isShown)}
      none={none}
    >
      {(silences) => (
        <Rows of={silences.toSorted(compare)}>{(one) => <SilenceRow key={one.id} silence={one} />}</Rows>
      )}
    </PagedPanel>
  );
}

function compare(one: Silence, other: Silence): number {
  return Number(one.state !== "active") - Number(other.state !== "active") || other.id - one.id;
}
