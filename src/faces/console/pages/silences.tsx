import { LASTING_SILENCE_STATES } from "#model/kinds.ts";
import { type Silence, useSilences } from "../api/alert.ts";
import { OlderEntries } from "../components/older-entries.tsx";
import { Panel } from "../components/panel.tsx";
import { SilenceRow } from "../components/silence-row.tsx";
import { Empty, QueryView } from "../components/states.tsx";
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
  const { chosen, zones } = useZones();
  const found = useSilences(states);
  const ids = new Set(zones.map(({ id }) => id));
  const isShown = ({ matchers }: Silence) =>
    chosen === "" || matchers?.zone === undefined || matchers.zone.some((zone) => ids.has(zone));
  const silences = (found.data?.pages.flatMap(({ items }) => items) ?? [])
    .filter(isShown)
    .sort(
      (one, other) => Number(one.state !== "active") - Number(other.state !== "active") || other.id - one.id,
    );
  return (
    <Panel title={title} about={about} flush>
      <QueryView query={found} rows={3} asking="silences">
        {() =>
          silences.length === 0 ? (
            <Empty>{none}</Empty>
          ) : (
            <ul className="lw-rows">
              {silences.map((silence) => (
                <SilenceRow key={silence.id} silence={silence} />
              ))}
            </ul>
          )
        }
      </QueryView>
      <OlderEntries query={found} what="silences" />
    </Panel>
  );
}
