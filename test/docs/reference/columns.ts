import { COLUMN_NAMES, describeColumn } from '../../../src/request-log/columns.js';
import { code } from './markdown.js';

export interface Column {
  name: string;
  type: string;
  nullable: boolean;
}

/** The columns of `request_log`, in the order of the table. */
export function columnsReference(columns: readonly Column[]): string {
  return columns
    .map(({ name, type, nullable }) => {
      const known = COLUMN_NAMES.find((column) => column === name);
      if (known === undefined) throw new Error(`Column ${name} has no description.`);
      return `### ${code(name)}\n\n${code(type)}${nullable ? ', may be null' : ''}. ${describeColumn(known)}`;
    })
    .join('\n\n');
}
