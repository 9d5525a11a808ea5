import { format } from '@sqltools/formatter';

export interface Statement {
  query: string;
  parameters?: unknown[];
}

/** The source of a migration. */
export function migrationText(
  className: string,
  { up, down }: { up: readonly Statement[]; down: readonly Statement[] },
): string {
  return `import type { MigrationInterface, QueryRunner } from 'typeorm';

export class ${className} implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
${up.map(callText).join('\n')}
  }

  async down(queryRunner: QueryRunner): Promise<void> {
${down.map(callText).join('\n')}
  }
}
`;
}

function callText({ query, parameters = [] }: Statement): string {
  // The formatter would change texts of several lines, and those between dollars.
  const lines = /\n|\$\w*\$/.test(query) ? [query] : format(query, { indent: '  ' }).split('\n');
  const sql =
    lines.length === 1 ? lines[0]! : ['', ...lines.map((line) => `      ${line}`), '    '].join('\n');
  const given = parameters.length === 0 ? '' : `, ${JSON.stringify(parameters)}`;
  return `    await queryRunner.query(\`${escaped(sql)}\`${given});`;
}

/** For a template literal. */
function escaped(sql: string): string {
  return sql.replace(/[\\`]|\$(?=\{)/g, '\\$&');
}
