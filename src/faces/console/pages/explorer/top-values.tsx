import { formatShare, many } from "#lib/format.ts";
import { FIELD_NAMES, toFieldName } from "#model/fields.ts";
import { type EventScope, useHistogram, useTopList } from "../../api/search.ts";
import { ActionWord } from "../../components/action-word.tsx";
import { Choices } from "../../components/choices.tsx";
import { FilterValue } from "../../components/filter-value.tsx";
import { Panel } from "../../components/panel.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { FIELD_WORDS, formatCount, wordField } from "../../look/words.ts";
import { useUrlState } from "../../state/url-state.ts";
import classes from "./explorer.module.css";

const SHOWN = 25;

/** The most frequent values of one field, each to filter for and to filter out. */
export function TopValues({ scope }: { readonly scope: EventScope }) {
  const { params, change } = useUrlState();
  const field = toFieldName(params.get("by")) ?? "address";
  const top = useTopList(scope, field);
  const total = useHistogram(scope).data?.total ?? 0;
  return (
    <Panel title="Group by" about={top.data === undefined ? null : many(top.data.values, "value")} flush>
      <div className="lw-hint">
        <Choices
          label="Field"
          names={FIELD_NAMES}
          words={FIELD_WORDS}
          chosen={[field]}
          onToggle={(name) => change({ by: name === "address" ? null : name }, { replace: true })}
        />
      </div>
      <QueryView query={top} rows={10} asking={`the values of ${wordField(field)}`}>
        {({ groups, values }) => {
          const shown = groups.slice(0, SHOWN);
          const rest = total - shown.reduce((sum, { count }) => sum + count, 0);
          if (shown.length === 0) return <Empty>No event matches.</Empty>;
          return (
            <>
              <ol className={`lw-list ${classes["top"]}`}>
                {shown.map(({ value, count, sparkline }) => (
                  <li
                    key={value}
                    className={classes["value"]}
                    style={{ "--share": `${total > 0 ? (100 * count) / total : 0}%` } as React.CSSProperties}
                  >
                    <FilterValue field={field} value={value}>
                      {field === "action" ? <ActionWord action={value} /> : undefined}
                    </FilterValue>
                    <b>{formatCount(count)}</b>
                    <span className="lw-dim lw-number">{total === 0 ? "" : formatShare(count / total)}</span>
                    <Sparkline values={sparkline} width={72} label={`${value.slice(0, 80)} over the span`} />
                  </li>
                ))}
              </ol>
              {rest > 0 && values > shown.length ? (
                <div className="lw-hint">
                  all others: {formatCount(rest)} events ({formatShare(rest / total)}),{" "}
                  {formatCount(values - shown.length)} values
                </div>
              ) : null}
            </>
          );
        }}
      </QueryView>
    </Panel>
  );
}
