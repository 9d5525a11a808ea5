import { SimpleGrid, Textarea, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { ApiError, ResponseOf } from '../api/client';

/** What people note about a team or a key. */
export type Annotations = Pick<
  ResponseOf<'/admin/v1/teams/{id}', 'get'>,
  'owner' | 'contact' | 'cost_center' | 'note'
>;

export const NO_ANNOTATIONS: Annotations = { owner: null, contact: null, cost_center: null, note: null };

/** Members that the API compares and shows, from any team or key. */
export function annotationsOf({ owner, contact, cost_center, note }: Annotations): Annotations {
  return { owner, contact, cost_center, note };
}

/** Owner, contact, cost center and note of a team or a key. An empty field is none. */
export function AnnotationFields({
  value,
  onChange,
  error,
  inherited,
  charged = true,
  owned = true,
}: {
  value: Annotations;
  onChange: (value: Annotations) => void;
  error: ApiError | undefined;
  /** Of the key's team, which applies where the key has none of its own. */
  inherited?: Annotations;
  /** Whether the cost center can be set. */
  charged?: boolean;
  /** Whether the owner can be set: that of a member's own key is the member. */
  owned?: boolean;
}) {
  const field = (name: keyof Annotations, label: string, placeholder: string) => ({
    label,
    placeholder: (name === 'note' ? null : inherited?.[name]) ?? placeholder,
    value: value[name] ?? '',
    onChange: (event: { currentTarget: { value: string } }) =>
      onChange({ ...value, [name]: event.currentTarget.value === '' ? null : event.currentTarget.value }),
    error: error?.of(name),
    autoComplete: 'off',
  });
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 1 + Number(owned) + Number(charged) }} spacing="sm">
        {owned && <TextInput {...field('owner', 'Owner', 'Person or group')} maxLength={200} />}
        <TextInput {...field('contact', 'Contact', 'Person or channel')} maxLength={200} />
        {charged && <TextInput {...field('cost_center', 'Cost center', 'Who is charged')} maxLength={200} />}
      </SimpleGrid>
      <Textarea
        {...field('note', 'Note', 'What it is for')}
        maxLength={2000}
        autosize
        minRows={1}
        maxRows={8}
      />
    </>
  );
}

/** Their lines in a drawer. @param inherited of the key's team */
export function annotationFacts(
  { owner, contact, cost_center, note }: Annotations,
  inherited?: Annotations,
): [string, ReactNode][] {
  const or = (own: string | null, ofTeam: string | null | undefined) =>
    own ?? (ofTeam == null ? undefined : `${ofTeam} (of the team)`);
  return [
    ['Owner', or(owner, inherited?.owner)],
    ['Contact', or(contact, inherited?.contact)],
    ['Cost center', or(cost_center, inherited?.cost_center)],
    ['Note', note === null ? undefined : <span style={{ whiteSpace: 'pre-wrap' }}>{note}</span>],
  ];
}
