/** A time series drawn by uPlot, with the same figures as a table for those who cannot see it. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { timeText } from './format.ts';

export interface Series {
  label: string;
  values: readonly (number | null)[];
}

interface ChartProps {
  label: string;
  /** Milliseconds since 1970. */
  times: readonly number[];
  series: readonly Series[];
  format(value: number | null): string;
  /** Between two times. */
  bucketMs: number;
  /** Values are sums, drawn as bars on top of each other; otherwise lines. */
  sums: boolean;
  height?: number;
}

const COLOURS = 8;

export function Chart({ label, times, series, format, bucketMs, sums, height = 200 }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = frame.current;
    if (place === null) return;
    const draw = () => {
      place.replaceChildren();
      new uPlot(optionsOf({ place, series, format, bucketMs, sums, height }), dataOf(times, series, sums), place);
    };
    draw();
    let width = place.clientWidth;
    const resized = new ResizeObserver(() => {
      if (place.clientWidth === width) return;
      width = place.clientWidth;
      draw();
    });
    resized.observe(place);
    const recoloured = new MutationObserver(draw);
    recoloured.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      recoloured.disconnect();
    };
  }, [times, series, format, bucketMs, sums, height]);
  return (
    <figure class="chart" aria-label={label}>
      <div ref={frame} class="chart-frame" aria-hidden="true" />
      {series.every(({ values }) => values.every((value) => !value)) && <p class="chart-empty">Nothing in this time</p>}
      {series.length > 1 && (
        <ul class="legend" aria-hidden="true">
          {series.map(({ label: name }, at) => (
            <li key={name}>
              <i class={`colour-${at % COLOURS}`} />
              {name}
            </li>
          ))}
        </ul>
      )}
      <div class="unseen">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {series.map(({ label: name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, row) => (
              <tr key={time}>
                <th scope="row">{timeText(time)}</th>
                {series.map(({ label: name, values }) => (
                  <td key={name}>{format(values[row] ?? null)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

interface DrawOptions {
  place: HTMLElement;
  series: readonly Series[];
  format(value: number | null): string;
  bucketMs: number;
  sums: boolean;
  height: number;
}

function optionsOf({ place, series, format, bucketMs, sums, height }: DrawOptions): uPlot.Options {
  const style = getComputedStyle(place);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--chart-text'),
    grid: { stroke: colour('--chart-grid'), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, sans-serif',
    gap: 8,
  };
  return {
    width: Math.max(place.clientWidth, 200),
    height,
    legend: { show: false },
    padding: [10, 8, 0, 0],
    cursor: { points: { size: 7 }, drag: { x: false, y: false }, y: false },
    scales: {
      x: { range: (_, min, max) => (sums ? [min - bucketMs / 2_000, max + bucketMs / 2_000] : [min, max]) },
      y: { range: (_, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      { ...axis, size: 42, grid: { show: false } },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      ...(sums ? series.toReversed() : series).map((each) => seriesOptions(each, series.indexOf(each), sums, colour)),
    ],
    plugins: [tooltip(series, format)],
  };
}

function seriesOptions(
  { label, values }: Series,
  at: number,
  sums: boolean,
  colour: (name: string) => string,
): uPlot.Series {
  const stroke = colour(`--chart-${at % COLOURS}`);
  if (!sums) return { label, stroke, width: 1.75, points: { show: values.length < 2 }, spanGaps: true };
  const paths = uPlot.paths.bars?.({ size: [0.78, 36], radius: 0.08 });
  return { label, stroke, fill: stroke, width: 0, points: { show: false }, ...(paths && { paths }) };
}

/** Bars of all series begin at 0, so the highest sums are drawn first. */
function dataOf(times: readonly number[], series: readonly Series[], sums: boolean): uPlot.AlignedData {
  const seconds = times.map((time) => time / 1_000);
  if (!sums) return [seconds, ...series.map(({ values }) => [...values])];
  const totals = times.map(() => 0);
  const layers = series.map(({ values }) =>
    values.map((value, at) => {
      totals[at] = (totals[at] ?? 0) + (value ?? 0);
      return totals[at] ?? 0;
    }),
  );
  return [seconds, ...layers.reverse()];
}

/** Says what is under the pointer. Built of text nodes, because names of series come from outside. */
function tooltip(series: readonly Series[], format: (value: number | null) => string): uPlot.Plugin {
  const box = document.createElement('div');
  box.className = 'tooltip';
  return {
    hooks: {
      init: (plot) => void plot.over.append(box),
      setCursor(plot) {
        const { idx, left = 0 } = plot.cursor;
        box.hidden = idx == null || left < 0;
        if (idx == null) return;
        const time = document.createElement('strong');
        time.textContent = timeText((plot.data[0][idx] ?? 0) * 1_000);
        const lines = series.flatMap(({ label, values }, at) => {
          if (values[idx] == null || (series.length > 1 && values[idx] === 0)) return [];
          const line = document.createElement('div');
          const mark = document.createElement('i');
          mark.className = `colour-${at % COLOURS}`;
          const name = document.createElement('span');
          name.textContent = label;
          const value = document.createElement('b');
          value.textContent = format(values[idx] ?? null);
          line.append(mark, name, value);
          return [line];
        });
        box.replaceChildren(time, ...lines);
        const toLeft = left > plot.over.clientWidth / 2;
        box.style.left = toLeft ? '' : `${left + 14}px`;
        box.style.right = toLeft ? `${plot.over.clientWidth - left + 14}px` : '';
      },
    },
  };
}
