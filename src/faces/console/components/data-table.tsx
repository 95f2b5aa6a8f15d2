import type { ReactNode } from "react";

export interface Column<Row> {
  readonly head: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** `lw-number` and `lw-wide`. */
  readonly className?: string;
  /** How the rows are sorted by this column. */
  readonly sort?: "ascending" | "descending" | undefined;
}

interface Props<Row> {
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string | number;
  readonly columns: readonly Column<Row>[];
  readonly className?: string | undefined;
  /** The number of the row that the keys have chosen. */
  readonly chosen?: number;
}

/** A table with a row for each item. */
export function DataTable<Row>({ rows, idOf, columns, className = "", chosen }: Props<Row>) {
  return (
    <table className={`lw-table ${className}`}>
      <thead>
        <tr>
          {columns.map(({ head, className: name, sort }, index) => (
            <th key={`${index}`} className={name} aria-sort={sort}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={idOf(row)} data-row={at} data-chosen={at === chosen || undefined}>
            {columns.map(({ cell, className: name }, index) => (
              <td key={`${index}`} className={name}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
