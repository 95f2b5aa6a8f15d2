import { LASTING_SILENCE_STATES } from "#model/kinds.ts";
import { type Silence, useSilences } from "../api/alert.ts";
import { PagedPanel } from "../components/paged-panel.tsx";
import { Rows } from "../components/rows.tsx";
import { SilenceRow } from "../components/silence-row.tsx";
import { useZones } from "../state/zones.ts";

/** Lists the silences: what each mutes, until when, by whom and why. */
export default function SilencesPage() {
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Silences</h1>
      <List
        title="Silences"
        about="active, and pending ones that have not begun"
        states={LASTING_SILENCE_STATES}
        none="Nothing is muted. A silence is made on the page of an alert, or from the alerts that are selected in the list."
      />
      <List title="Ended" about="newest first" states={["expired"]} none="No silence has ended." />
    </div>
  );
}

interface Props {
  readonly title: string;
  readonly about: string;
  readonly states: readonly Silence["state"][];
  readonly none: string;
}

function List({ title, about, states, none }: Props) {
  const { isShown } = useZones();
  return (
    <PagedPanel
      title={title}
      about={about}
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
