import { RequestLogColumns } from './column-descriptions.js';
import { code } from './markdown.js';

export interface Column {
  name: string;
  type: string;
  nullable: boolean;
}

/** The columns of `request_log`, in the order of the admin API. */
export function columnsReference(columns: readonly Column[]): string {
  return columns
    .map(({ name, type, nullable }) => {
      const about = RequestLogColumns[name];
      if (about === undefined) throw new Error(`Column ${name} has no description.`);
      return `### ${code(name)}\n\n${code(type)}${nullable ? ', may be null' : ''}. ${about}`;
    })
    .join('\n\n');
}
