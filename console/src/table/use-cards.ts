import { type RefObject, useLayoutEffect } from 'react';

/**
 * Marks the frame of a table that does not fit with `data-tight`, which saves room; and with `data-cards` where it does not
 * fit so either, or would be narrow anyway.
 *
 * @param narrow from this width on down, in rem
 * @param content what the width of the table depends on
 */
export function useCards(
  frame: RefObject<HTMLElement | null>,
  narrow: number,
  content: readonly unknown[],
): void {
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return;
    let measured = -1;
    const measure = () => {
      const { clientWidth } = element;
      if (clientWidth === measured) return;
      measured = clientWidth;
      const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      const fits = () => element.scrollWidth <= clientWidth;
      element.removeAttribute('data-cards');
      element.removeAttribute('data-tight');
      const isNarrow = clientWidth <= narrow * rem;
      element.toggleAttribute('data-tight', !isNarrow && !fits());
      if (!isNarrow && fits()) return;
      element.removeAttribute('data-tight');
      element.setAttribute('data-cards', '');
    };
    const observer = new ResizeObserver(measure);
    measure();
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame, narrow, ...content]);
}
