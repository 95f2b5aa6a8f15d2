import { useOperation } from "../../api/ask.ts";
import { DataTable } from "../../components/data-table.tsx";
import { Json } from "../../components/json.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { QueryView } from "../../components/states.tsx";

/** The configuration as it is in force. A secret is never in the answer. */
export function Settings() {
  const settings = useOperation("settings.show", {});
  return (
    <QueryView query={settings} rows={10} asking="the configuration">
      {({ variables, ...file }) => (
        <>
          <Panel title="Environment" about="of the process that answers; what is set stands first" flush>
            <DataTable
              rows={variables.toSorted((one, other) => Number(other.isSet) - Number(one.isSet))}
              idOf={({ name }) => name}
              columns={[
                { head: "variable", cell: ({ name }) => <span className="lw-mono">{name}</span> },
                {
                  head: "value",
                  cell: ({ value, isSet }) => (
                    <>
                      {value === "[secret]" ? (
                        <span aria-label="a secret">••••••••</span>
                      ) : (
                        <Payload text={value ?? ""} none="not set" />
                      )}
                      {isSet || value === null ? null : <span className="lw-dim"> default</span>}
                    </>
                  ),
                },
              ]}
            />
          </Panel>
          <Panel
            title="Configuration file"
            about="channels by name and kind, routes and detection as they apply"
          >
            <div className="lw-columns">
              {(["channels", "routing", "detection"] as const).map((name) => (
                <div key={name}>
                  <h3>{name}</h3>
                  <Json of={file[name]} label={name} />
                </div>
              ))}
            </div>
          </Panel>
        </>
      )}
    </QueryView>
  );
}
