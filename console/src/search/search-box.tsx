import { Combobox, Kbd, Loader, Text, TextInput, useCombobox } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import { useIsMember } from '../app/session';
import { SearchIcon } from '../display/icons';
import { shortTime } from '../figures/times';
import { useTimeZone } from '../url/time-zone';
import { useGoTo } from './destination';
import { Matches } from './matches';
import classes from './search-box.module.css';
import { isForLog, looksLikeId, withoutKey } from './search-text';
import { type Found, useFindKey, useLogged, useNamed } from './use-find';

/** Names are looked up when nothing was typed for so long. */
const TYPING_MS = 200;
/** The value of the option that searches the log. */
const IN_LOG = 'log';

/** Goes to whatever somebody has an ID or a name of. `/` leads to it, Escape back to where one was. */
export function SearchBox() {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [before, setBefore] = useState<string>();
  /** The text that the log is searched for. */
  const [logged, setLogged] = useState('');
  /** Enter was pressed before there was anything to choose. */
  const [hurries, setHurries] = useState(false);
  const [settled] = useDebouncedValue(text.trim(), TYPING_MS);
  const wanted = hurries ? text.trim() : settled;
  const isMember = useIsMember();
  const zone = useTimeZone();
  const goTo = useGoTo();
  const combobox = useCombobox({ onDropdownClose: () => combobox.resetSelectedOption() });
  const leave = useShortcut(input);

  const secret = useFindKey();
  const isSecret = !secret.isIdle;
  const named = useNamed(isSecret ? '' : wanted);
  const searchesLog = isForLog(wanted) && (logged === wanted || looksLikeId(wanted));
  const log = useLogged(wanted, before, searchesLog && !isSecret);

  const found: Found[] = isSecret
    ? secret.data
      ? [{ kind: 'key', id: secret.data.id, name: secret.data.name, team: secret.data.team, at: null }]
      : []
    : unique([...(named.data?.data ?? []), ...(searchesLog ? (log.data?.data ?? []) : [])]);
  const isPending = isSecret
    ? secret.isPending
    : wanted !== text.trim() || named.isLoading || (searchesLog && log.isLoading);
  const error = secret.error ?? named.error ?? (searchesLog ? log.error : null);
  const searched = searchesLog ? log.data?.log : undefined;
  const asksForLog =
    !isSecret && !isPending && isForLog(wanted) && (!searchesLog || searched?.whole === false);
  const isOpen = text.trim() !== '';

  const clear = () => {
    setText('');
    setLogged('');
    setBefore(undefined);
    setHurries(false);
    secret.reset();
    combobox.closeDropdown();
  };
  const type = (typed: string) => {
    const { text: kept, key } = withoutKey(typed);
    secret.reset();
    setBefore(undefined);
    setHurries(false);
    setText(kept);
    // Members may not ask whose key it is; its first characters find it among their own.
    if (key !== null && !isMember) secret.mutate(key);
    combobox.openDropdown();
  };
  const searchLog = () => {
    if (searched?.whole === false) setBefore(searched.from);
    setLogged(wanted);
  };
  const choose = (one: Found) => {
    clear();
    input.current?.blur();
    goTo(one);
  };

  // The first one is chosen, so that Enter goes there.
  useEffect(() => {
    // Those of an earlier text are not what Enter means.
    if (isPending) return combobox.resetSelectedOption();
    const first = combobox.selectFirstOption();
    // Mantine says which one is chosen only once an arrow key was pressed.
    if (first !== null) input.current?.setAttribute('aria-activedescendant', first);
  }, [found.length, asksForLog, isPending]);
  useEffect(() => {
    if (!hurries || isPending) return;
    if (found[0] !== undefined) choose(found[0]);
    else if (asksForLog && !searchesLog) searchLog();
    else setHurries(false);
  }, [hurries, isPending, found.length, asksForLog, searchesLog]);

  return (
    <div role="search" aria-label="Everything" className={classes.box}>
      <Combobox
        store={combobox}
        position="bottom-start"
        withinPortal
        onOptionSubmit={(value) => {
          const one = found.find((other) => idOf(other) === value);
          if (value === IN_LOG) searchLog();
          else if (one !== undefined) choose(one);
        }}
      >
        <Combobox.Target withExpandedAttribute>
          <TextInput
            ref={input}
            size="sm"
            aria-label="Search"
            aria-autocomplete="list"
            aria-keyshortcuts="/"
            placeholder="Search: ID, key, team, model, user …"
            value={text}
            onChange={(event) => type(event.currentTarget.value)}
            onFocus={() => isOpen && combobox.openDropdown()}
            onBlur={() => combobox.closeDropdown()}
            onKeyDown={(event) => {
              if (event.key === 'Escape') {
                clear();
                leave();
              } else if (event.key === 'Enter' && (isPending || !combobox.dropdownOpened)) {
                if (isOpen) setHurries(true);
              }
            }}
            leftSection={<SearchIcon size={16} />}
            rightSection={
              isOpen && isPending ? (
                <Loader size={14} aria-hidden="true" />
              ) : (
                <Kbd size="xs" className={classes.hint} aria-hidden="true">
                  /
                </Kbd>
              )
            }
            rightSectionPointerEvents="none"
            autoComplete="off"
            spellCheck={false}
            maxLength={200}
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={!isOpen} className={classes.dropdown}>
          <Combobox.Options mah={420} style={{ overflowY: 'auto' }} aria-label="Found">
            <Matches found={found} idOf={idOf} />
            {asksForLog && (
              <Combobox.Option value={IN_LOG}>
                <Text size="sm" span>
                  {searched
                    ? `Search the log before ${shortTime(new Date(searched.from), zone)}`
                    : `Search the request log for “${wanted}”`}
                </Text>
                <Text size="xs" span display="block" className={classes.detail}>
                  {"a provider's request ID, an end user or a session, whole"}
                </Text>
              </Combobox.Option>
            )}
          </Combobox.Options>
          <Combobox.Footer className={classes.footer}>
            <Text size="xs" c={error === null ? 'dimmed' : 'var(--postern-bad)'} role="status">
              {error !== null
                ? error.message
                : isPending
                  ? searchesLog
                    ? 'Searching the request log …'
                    : 'Searching …'
                  : statusOf(found.length, isSecret)}
              {error === null && !isPending && searched !== undefined && searched !== null && !isSecret && (
                <>
                  {' '}
                  {searched.whole
                    ? 'The whole request log was searched.'
                    : `The request log was searched back to ${shortTime(new Date(searched.from), zone)}.`}
                </>
              )}
            </Text>
          </Combobox.Footer>
        </Combobox.Dropdown>
      </Combobox>
    </div>
  );
}

function statusOf(count: number, isSecret: boolean): string {
  if (count === 0)
    return isSecret ? 'No key of this gateway has or had this secret.' : 'Nothing has this name or ID.';
  return count === 1 ? '1 match.' : `${count} matches.`;
}

const idOf = ({ kind, id, name }: Found) => `${kind}:${id ?? name}`;

/** The log may find a model that the names have already. */
function unique(found: readonly Found[]): Found[] {
  return [...new Map(found.map((one) => [idOf(one), one])).values()];
}

/** `/` focuses the field, unless something is being typed or a dialog is open. @returns leads back to where one was */
function useShortcut(input: React.RefObject<HTMLInputElement | null>): () => void {
  const last = useRef<HTMLElement | null>(null);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented)
        return;
      const target = event.target as HTMLElement;
      if (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      if (document.querySelector('[role="dialog"]') !== null) return;
      event.preventDefault();
      last.current = document.activeElement as HTMLElement | null;
      input.current?.focus();
      input.current?.select();
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [input]);
  return () => {
    input.current?.blur();
    last.current?.focus({ preventScroll: true });
    last.current = null;
  };
}
