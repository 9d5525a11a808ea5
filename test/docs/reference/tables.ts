import { code } from './markdown.js';

/** Of TypeORM, and so without a comment. */
const MIGRATIONS = { name: 'migrations', comment: 'The migrations that have run.' };

export interface Table {
  name: string;
  comment: string | null;
}

/** Every table of the database, with its comment. */
export function tablesReference(tables: readonly Table[]): string {
  return tables
    .map(({ name, comment }) => {
      const meaning = comment ?? (name === MIGRATIONS.name ? MIGRATIONS.comment : null);
      if (meaning === null) throw new Error(`Table ${name} has no comment.`);
      return `- ${code(name)}: ${meaning}`;
    })
    .join('\n');
}
