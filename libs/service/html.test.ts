import { describe, expect, it } from 'vitest';
import { html } from './html.ts';

describe('html', () => {
  it('escapes values in text and attributes', () => {
    // asvs: 1.2.1
    const evil = `"><script>alert('&')</script>`;
    expect(html`<p title="${evil}">${evil}</p>`.text).toBe(
      '<p title="&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;">&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</p>',
    );
  });

  it('inserts markup of other templates, and lists of markup, unchanged', () => {
    const items = ['a', '<b>'].map((item) => html`<li>${item}</li>`);
    expect(html`<ul>${items}</ul>`.text).toBe('<ul><li>a</li><li>&lt;b&gt;</li></ul>');
  });

  it('also escapes texts in lists', () => {
    expect(html`${['<', ['&']]}`.text).toBe('&lt;&amp;');
  });

  it('omits missing values and false, but not zero', () => {
    expect(html`${undefined}${null}${false}${0}${10n}${''}`.text).toBe('010');
  });

  it('does not trust objects that only look like markup', () => {
    expect(html`${{ text: '<i>' } as never}`.text).toBe('[object Object]');
  });
});
