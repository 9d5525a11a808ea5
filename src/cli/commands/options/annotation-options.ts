import type { Command } from 'commander';
import type { Annotations } from '../../../teams/annotations.js';
import type { Cell, Column } from '../../table.js';

export interface AnnotationOptions {
  owner?: string;
  contact?: string;
  costCenter?: string;
  note?: string;
}

/** For messages about what can be changed. */
export const ANNOTATION_OPTION_NAMES = '--owner, --contact, --cost-center, --note';

export function addAnnotationOptions(command: Command): Command {
  return command
    .option('--owner <text>', 'who owns it, such as a person or a group, or none; usage can be grouped by it')
    .option('--contact <text>', 'whom to ask, such as a person or a channel, or none')
    .option('--cost-center <text>', 'who is charged, or none; usage can be grouped by it')
    .option('--note <text>', 'free text, or none');
}

/** Filters of a list. @param whose what else the filters look at, such as ", of their own or of their team" */
export function addAnnotationFilters(command: Command, whose = ''): Command {
  return command
    .option('--owner <text>', `filter by owner${whose}`)
    .option('--contact <text>', `filter by contact${whose}`)
    .option('--cost-center <text>', `filter by cost center${whose}`);
}

/** The filters as query parameters. */
export function annotationQuery({ owner, contact, costCenter }: AnnotationOptions) {
  return { owner, contact, cost_center: costCenter };
}

/** The options that were given, as fields of the admin API. */
export function annotationsOf({ owner, contact, costCenter, note }: AnnotationOptions): Partial<Annotations> {
  const given = Object.entries({ owner, contact, cost_center: costCenter, note }).filter(
    ([, text]) => text !== undefined,
  );
  return Object.fromEntries(given.map(([name, text]) => [name, text === 'none' ? null : text]));
}

/** No line for what is not set. */
export function annotationLines({
  owner,
  contact,
  cost_center,
  note,
}: Annotations): (readonly [string, Cell])[] {
  const lines = note?.split(/\r?\n/) ?? [];
  return [
    ...Object.entries({ owner, contact, 'cost center': cost_center }).filter(([, text]) => text !== null),
    ...lines.map((line, i) => [i === 0 ? 'note' : '', line] as const),
  ];
}

/** Columns of a list, without those that no row has a value for. */
export function annotationColumns<T extends Annotations>(rows: readonly T[]): readonly Column<T>[] {
  const columns: (Column<T> & { name: keyof Annotations })[] = [
    { name: 'owner', head: 'OWNER', cell: ({ owner }) => owner, drop: 4, min: 8 },
    { name: 'contact', head: 'CONTACT', cell: ({ contact }) => contact, drop: 4, min: 8 },
    { name: 'cost_center', head: 'COST CENTER', cell: ({ cost_center: center }) => center, drop: 5 },
  ];
  return columns
    .filter(({ name }) => rows.some((row) => row[name] !== null))
    .map(({ name: _, ...column }) => column);
}
