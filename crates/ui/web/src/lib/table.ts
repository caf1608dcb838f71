// Lists of objects of one kind, as a table.
import { isObject } from "./calls";
import type { Json, JsonObject } from "./types";

export interface Table {
  columns: string[];
  rows: JsonObject[];
}

const MOST_COLUMNS = 16;

/** The table that a value is, or the one that it has as its only list; undefined if its rows are not alike. */
export function tableOf(value: Json | undefined): Table | undefined {
  if (isObject(value)) {
    const lists = Object.values(value).filter((one) => Array.isArray(one));
    return lists.length === 1 ? tableOf(lists[0]) : undefined;
  }
  if (!Array.isArray(value) || value.length < 2 || !value.every(isObject)) return undefined;
  const columns = new Set<string>();
  let cells = 0;
  for (const row of value) {
    for (const name of Object.keys(row)) {
      columns.add(name);
      cells++;
    }
    if (columns.size > MOST_COLUMNS) return undefined;
  }
  // Rows that have hardly a column in common are shown better one by one.
  return columns.size > 0 && cells * 2 >= columns.size * value.length ? { columns: [...columns], rows: value } : undefined;
}
