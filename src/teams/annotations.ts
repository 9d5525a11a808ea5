import { Column } from 'typeorm';
import { z } from 'zod';
import { searchText, UNPRINTABLE } from '../admin/fields.schema.js';
import { containsKeyFormat } from '../platform/api-key.js';

const MAX_LENGTH = 200;
const MAX_NOTE_LENGTH = 2_000;

/** What people note about a team or a key. No call is decided by it. */
export interface Annotations {
  contact: string | null;
  cost_center: string | null;
  note: string | null;
}

/** Their names, in the API and of their columns. */
export const ANNOTATIONS = [
  'contact',
  'cost_center',
  'note',
] as const satisfies readonly (keyof Annotations)[];

/** The columns of teams and keys. */
export abstract class Annotated {
  @Column('text', { nullable: true, comment: 'Who is responsible: a person or a channel.' })
  contact!: string | null;

  @Column('text', {
    name: 'cost_center',
    nullable: true,
    comment: 'Who is charged; of a key null for that of its team.',
  })
  costCenter!: string | null;

  @Column('text', { nullable: true, comment: 'Free text.' })
  note!: string | null;
}

/** Of the row `k` of a key and `t` of its team. */
export const EFFECTIVE_CONTACT = 'COALESCE(k.contact, t.contact)';
export const EFFECTIVE_COST_CENTER = 'COALESCE(k.cost_center, t.cost_center)';

/** The same members under the names of the entity. */
export function withAnnotationColumns<T extends Partial<Annotations>>({ cost_center, ...others }: T) {
  return { ...others, costCenter: cost_center };
}

export function annotationsOf({ contact, costCenter, note }: Annotated): Annotations {
  return { contact, cost_center: costCenter, note };
}

const INHERITED = 'Of a key: null for that of its team.';
const about = {
  contact: {
    description: `Who is responsible, such as a person or a channel. ${INHERITED}`,
    example: 'jane@example.com',
  },
  cost_center: {
    description: `Who is charged. \`GET /admin/v1/usage?group_by=cost_center\` sums by it. ${INHERITED}`,
    example: 'CC-4711',
  },
  note: { description: 'Free text, for people.', example: 'Nightly batch of the ranking model.' },
};

const LINE = `must be text of 1 to ${MAX_LENGTH} printable characters without spaces at its ends; null for none`;
const NOTE = `must be text of 1 to ${MAX_NOTE_LENGTH} characters, without control characters but line ends; null for none`;
const SECRET = 'must not contain a gateway key';

const line = z
  .string(LINE)
  .refine((text) => text.length > 0 && [...text].length <= MAX_LENGTH, LINE)
  .refine((text) => text.trim() === text && !UNPRINTABLE.test(text), LINE)
  .refine((text) => !containsKeyFormat(text), SECRET)
  .nullable();
const note = z
  .string(NOTE)
  .refine((text) => text.trim().length > 0 && [...text].length <= MAX_NOTE_LENGTH, NOTE)
  .refine((text) => !UNPRINTABLE.test(text.replace(/\r?\n|\t/g, ' ')), NOTE)
  .refine((text) => !containsKeyFormat(text), SECRET)
  .nullable();

/** Members of a view. */
export const annotationsView = {
  contact: z.string().nullable().meta(about.contact),
  cost_center: z.string().nullable().meta(about.cost_center),
  note: z.string().nullable().meta(about.note),
};

/** Members of a new team or key. */
export const newAnnotations = {
  contact: line.default(null).meta(about.contact),
  cost_center: line.default(null).meta(about.cost_center),
  note: note.default(null).meta(about.note),
};

/** Members of a change. */
export const annotationsChange = {
  contact: line.optional().meta(about.contact),
  cost_center: line.optional().meta(about.cost_center),
  note: note.optional().meta(about.note),
};

/** Filters of a list. @param of what is listed, such as `teams` */
export const annotationFilters = (of: string, own = '') => ({
  contact: searchText()
    .optional()
    .meta({ description: `Only ${of} with this contact${own}.`, example: about.contact.example }),
  cost_center: searchText()
    .optional()
    .meta({ description: `Only ${of} with this cost center${own}.`, example: about.cost_center.example }),
});
export type AnnotationFilter = Partial<Record<'contact' | 'cost_center', string>>;
