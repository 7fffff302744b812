/** What a model wrote, as it arrives: its reasoning, which is open until the text begins, then the text. */
export function Output({ text, reasoning }: { text: string; reasoning: string }) {
  return (
    <>
      {reasoning !== '' && (
        <details class="reasoning" open={text === ''}>
          <summary>Reasoning</summary>
          <Written text={reasoning} />
        </details>
      )}
      <div aria-live="polite">
        <Written text={text} />
      </div>
    </>
  );
}

/**
 * A model's answer as text. Only code fences are recognized; everything is a text node, so nothing that a model
 * writes can become markup.
 */
function Written({ text }: { text: string }) {
  if (text === '') return null;
  return (
    <div class="written">
      {text.split(/^```/m).map((piece, at) => {
        const isCode = at % 2 === 1;
        const [, language = '', code = ''] = isCode ? (/^([\w+-]*)\n?(.*)$/s.exec(piece) ?? []) : [];
        return isCode ? <CodePiece key={at} language={language} code={code} /> : <p key={at}>{piece.trim()}</p>;
      })}
    </div>
  );
}

function CodePiece({ language, code }: { language: string; code: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section class="code" tabIndex={0} aria-label={language === '' ? 'Code' : `Code in ${language}`}>
      <pre>
        <code>{code}</code>
      </pre>
    </section>
  );
}
