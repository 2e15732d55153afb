#include "apps/cli.hpp"

#include "apps/help_text.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>

namespace poseidon::app {

namespace {

/// The program, its verb, the verb's verb: each has options, and all of them are valid behind the last.
using verb_chain = std::vector<const CLI::App*>;

std::string full_name(const verb_chain& chain) {
  std::string name;
  for (const auto* one : chain) name += (name.empty() ? "" : " ") + one->get_name();
  return name;
}

std::string see_help(const std::string& program) {
  return " " + program + " --help lists the options.";
}

std::string see_help(const verb_chain& chain) {
  return see_help(full_name(chain));
}

const CLI::Option* find_option(const verb_chain& chain, const std::string& name) {
  for (auto app = chain.rbegin(); app != chain.rend(); ++app)
    if (const auto* option = (*app)->get_option_no_throw(name)) return option;
  return nullptr;
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

[[noreturn]] void refuse_option(const verb_chain& chain, const std::string& word,
                                const std::string& name) {
  std::vector<std::string> known;
  for (const auto* app : chain)
    for (const auto* option : app->get_options())
      known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
  auto hint = did_you_mean(name, known);
  if (const auto quote = hint.find('"'); quote != std::string::npos) hint.insert(quote + 1, "--");
  throw spec_error(full_name(chain) + " has no option " + word.substr(0, word.find('=')) + "." +
                   hint + see_help(chain));
}

/// An option in the spelling of this program: "-resize_height=5" becomes "--resize-height=5".
/// `option`: set to the option that is meant.
std::string usual_option(const verb_chain& chain, const std::string& word,
                         const CLI::Option*& option) {
  const bool one_dash = word[1] != '-';
  if (one_dash) {
    option = find_option(chain, word.substr(0, 2));
    if (word.size() == 2 && option == nullptr) refuse_option(chain, word, word.substr(1));
    if (word.size() == 2) return word;
  }
  const auto equals = std::min(word.find('='), word.size());
  const auto begin = std::size_t{one_dash ? 1u : 2u};
  auto name = word.substr(begin, equals - begin);
  std::replace(name.begin(), name.end(), '_', '-');
  if (const auto* found = find_option(chain, "--" + name)) {
    option = found;
    return "--" + name + word.substr(equals);
  }
  if (option != nullptr && !is_flag(*option)) return word;  // -oFILE
  if (name.starts_with("no") && equals == word.size())
    if (const auto* found = find_option(chain, "--" + name.substr(2));
        found != nullptr && is_flag(*found)) {
      option = found;
      return "--" + name.substr(2) + "=false";
    }
  refuse_option(chain, word, name);
}

bool is_option(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const auto first =
      static_cast<unsigned char>(word[1] == '-' && word.size() > 2 ? word[2] : word[1]);
  return std::isalpha(first) != 0;
}

/// A word that is no option: the name of a verb where one has to come, or a positional argument.
void take_word(verb_chain& chain, const std::string& word) {
  const auto& app = *chain.back();
  const auto verbs = verbs_of(app);
  if (verbs.empty()) return;
  if (std::find(verbs.begin(), verbs.end(), word) == verbs.end())
    refuse_verb(full_name(chain), word, verbs);
  chain.push_back(app.get_subcommand(word));
}

/// `caffe train solver.prototxt` is no command of Caffe's either; what is meant is clear.
std::string hint_for_file(const CLI::App& app, const std::string& word) {
  if (!word.ends_with(".prototxt")) return {};
  // A verb takes options of Caffe's other verbs, too, and has no use for them.
  for (const bool required : {true, false})
    for (const char* name : {"--solver", "--model"})
      if (const auto* option = app.get_option_no_throw(name);
          option != nullptr && option->count() == 0 && option->get_required() == required)
        return std::string(" Did you mean ") + name + " " + word + "?";
  return {};
}

/// What Caffe has programs for is a verb of these.
std::string hint_for_tool(std::string word) {
  const auto given = word;
  std::replace(word.begin(), word.end(), '_', '-');
  if (word.ends_with(".bin")) word.erase(word.size() - 4);
  constexpr std::array<std::array<const char*, 2>, 9> tools{{
      {"convert-imageset", "poseidon-data convert list"},
      {"convert-mnist-data", "poseidon-data convert mnist"},
      {"convert-cifar-data", "poseidon-data convert cifar10"},
      {"compute-image-mean", "poseidon-data mean"},
      {"extract-features", "poseidon-data extract"},
      {"train-net", "poseidon-node train"},
      {"finetune-net", "poseidon-node train --weights FILE"},
      {"test-net", "poseidon-node test"},
      {"net-speed-benchmark", "poseidon-node time"},
  }};
  for (const auto& [caffes, ours] : tools)
    if (word == caffes) return std::string(" What Caffe's ") + given + " does, " + ours + " does.";
  if (word.starts_with("upgrade-"))
    return " Nothing has to be upgraded: nets, solvers and weights of Caffe's older formats are "
           "read as they are.";
  if (word.ends_with(".prototxt"))
    return " To train a solver: poseidon-node train --solver " + given + ".";
  return {};
}

std::string reason_of(const CLI::App& app, const CLI::ParseError& e) {
  const std::string text = e.what();
  const auto extra = app.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) {
    const auto word = extra.empty() ? text : extra.front();
    return "\"" + word + "\" belongs to no option." + hint_for_file(app, word);
  }
  return text + "." + (extra.empty() ? std::string() : hint_for_file(app, extra.front()));
}

}  // namespace

const CLI::Validator positive_number(
    [](std::string& given) {
      double value = 0;
      const bool is_number = CLI::detail::lexical_cast(given, value);
      const bool right = is_number && value > 0 && std::isfinite(value);
      return right ? std::string() : given + " is no number above 0";
    },
    "POSITIVE", "");

command_line::command_line(const std::string& description, const std::string& name)
    : CLI::App(description, name) {
  set_help_flag("-h,--help", "prints this text");
  set_version_flag("--version", name.substr(0, name.find(' ')) + " " POSEIDON_VERSION,
                   "prints the version");
  formatter(std::make_shared<help_text>());
  option_defaults()->always_capture_default();
}

std::vector<std::string> usual_words(const CLI::App& app, int argc, const char* const* argv) {
  verb_chain chain{&app};
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") {
      words.insert(words.end(), argv + i, argv + argc);
      break;
    }
    if (!is_option(word)) {
      take_word(chain, word);
      words.push_back(word);
      continue;
    }
    const CLI::Option* option = nullptr;
    const auto usual = usual_option(chain, word, option);
    words.push_back(usual);
    const bool has_value =
        usual.find('=') != std::string::npos || (usual[1] != '-' && usual.size() > 2);
    const bool wants_value = option->get_items_expected_min() > 0 && !has_value;
    if (!wants_value) continue;
    if (i + 1 == argc || is_option(argv[i + 1]))
      throw spec_error(usual + ": a value has to follow it, and none does." + see_help(chain));
    words.emplace_back(argv[++i]);
  }
  return words;
}

namespace {

std::string hint_of_verb(const std::string& word, const std::vector<std::string>& verbs) {
  const auto of_caffe = hint_for_tool(word);
  return of_caffe.empty() ? did_you_mean(word, verbs) : of_caffe;
}

}  // namespace

void refuse_verb(const std::string& program, const std::string& word,
                 const std::vector<std::string>& verbs) {
  throw spec_error(program + " " + word + ": there is no such verb. There are " +
                   comma_list(verbs) + "." + hint_of_verb(word, verbs) + see_help(program));
}

bool parsed(CLI::App& app, int argc, const char* const* argv) {
  auto words = usual_words(app, argc, argv);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& e) {
    app.exit(e);
    return false;
  } catch (const CLI::ParseError& e) {
    verb_chain chain{&app};
    while (!chain.back()->get_subcommands().empty())
      chain.push_back(chain.back()->get_subcommands().front());
    const auto verbs = verbs_of(*chain.back());
    if (dynamic_cast<const CLI::RequiredError*>(&e) != nullptr && !verbs.empty())
      throw spec_error(full_name(chain) + ": which verb? There are " + comma_list(verbs) + "." +
                       see_help(chain));
    throw spec_error(reason_of(app, e) + see_help(chain));
  }
  return true;
}

}  // namespace poseidon::app
