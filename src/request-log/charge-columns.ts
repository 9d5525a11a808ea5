import { bigints, dollars, integer, text } from './column-domains.js';
import type { Column } from './column.js';

/** The columns for budgets. Only rows to which a budget applies have them. */
export const CHARGE_COLUMNS = {
  charge_usd: {
    type: 'numeric',
    phases: ['begin', 'write'],
    toDomain: dollars,
    description:
      'What the call was charged against budgets in USD: its cost when the row was written, else an estimate. It is ' +
      'changed only when a job that it created is settled, with the budgets, so the sum of the charges is what the budgets count.',
    nullMeans: 'no budget in USD applied to the call.',
    example: '0.000142500',
  },
  charge_tokens: {
    type: 'bigint',
    phases: ['begin', 'write'],
    toDomain: integer(Number.MAX_SAFE_INTEGER),
    description:
      'What the call was charged against budgets in tokens: its input and output tokens, else an estimate. It is ' +
      'changed only when a job that it created is settled.',
    nullMeans: 'no budget in tokens applied to the call.',
  },
  limit_subject: {
    type: 'text',
    toDomain: text,
    phases: ['begin', 'write'],
    description: 'Keyed hash of the end user whose budget the call was charged against.',
    nullMeans: 'no budget per end user applied to the call.',
  },
  charge_rules: {
    type: 'bigint[]',
    phases: ['begin', 'write'],
    toDomain: bigints,
    description:
      'The budgets that the call was charged against (`limit_rule.nr`): what is spent of each is the sum of the charges of ' +
      'the rows that name it. As Postgres writes an array.',
    nullMeans: 'no budget applied to the call, or the row is older than this column.',
    example: '{3141592653589793238,2718281828459045235}',
  },
  limit_session: {
    type: 'text',
    toDomain: text,
    phases: ['begin', 'write'],
    description: 'Keyed hash of the session whose budget the call was charged against.',
    nullMeans: 'no budget per session applied to the call.',
  },
} as const satisfies Record<string, Column<unknown>>;
